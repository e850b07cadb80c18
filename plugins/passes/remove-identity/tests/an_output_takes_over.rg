// RUN: remove-identity
// What is computed becomes the output itself.
graph @g(%x: f32[2]) -> (%y) {
  %a: f32[2] = Relu(%x)
  %y: f32[2] = Identity(%a)
}
// EXPECT:
graph @g(%x: f32[2]) -> (%a as "y") {
  %a: f32[2] = Relu(%x)
}
