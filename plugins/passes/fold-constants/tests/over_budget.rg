// RUN: fold-constants | fold-constants.budget-bytes=4
// The result of one node takes 4 bytes, that of the other 8.
graph @g() -> (%y, %z) {
  %a: const f32[1] = [1.0]
  %b: const f32[2] = [1.0, 2.0]
  %y: f32[1] = Neg(%a)
  %z: f32[2] = Neg(%b)
}
// EXPECT:
graph @g() -> (%y, %z) {
  %b: const f32[2] = [1.0, 2.0]
  %y: const f32[1] = [-1.0]
  %z: f32[2] = Neg(%b)
}
