// RUN: remove-identity
// An output is neither an input nor another output.
graph @g(%x: f32[2]) -> (%y, %a, %z) {
  %y: f32[2] = Identity(%x)
  %a: f32[2] = Relu(%x)
  %z: f32[2] = Identity(%a)
}
// EXPECT:
graph @g(%x: f32[2]) -> (%y, %a, %z) {
  %y: f32[2] = Identity(%x)
  %a: f32[2] = Relu(%x)
  %z: f32[2] = Identity(%a)
}
