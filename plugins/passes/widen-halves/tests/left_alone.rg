// RUN: infer-shapes, widen-halves, remove-dead
// Without a product or the like, 16-bit floats are what loops read anyway, rounded after each operator.
graph @g(%x: f32[4], %y: f32[4]) -> (%z) {
  %a = Cast(%x) {to = 16}
  %b = Cast(%y) {to = 16}
  %c = Max(%a, %b)
  %z = Cast(%c) {to = 1}
}
// EXPECT:
graph @g(%x: f32[4], %y: f32[4]) -> (%z) {
  %a: bf16[4] = Cast(%x) {to = 16}
  %b: bf16[4] = Cast(%y) {to = 16}
  %c: bf16[4] = Max(%a, %b)
  %z: f32[4] = Cast(%c) {to = 1}
}
