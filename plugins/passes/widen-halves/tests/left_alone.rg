// RUN: infer-shapes, widen-halves, remove-dead
// Without a product or the like, 16-bit floats are what loops read anyway, rounded after each operator.
graph @g(%x: f16[4], %y: f16[4]) -> (%z) {
  %a = Add(%x, %y)
  %z = Relu(%a)
}
// EXPECT:
graph @g(%x: f16[4], %y: f16[4]) -> (%z) {
  %a: f16[4] = Add(%x, %y)
  %z: f16[4] = Relu(%a)
}
