// RUN: place-by-priority, insert-copies, alias-in-place
// The parts are computed in their places. %n is written over %m first; both move together.
graph @g(%x: f32[1,16,2,2], %w: f32[1,32,2,2]) -> (%y) {
  %a: f32[1,16,2,2] = Exp(%x)
  %m: f32[1,32,2,2] = Exp(%w)
  %n: f32[1,32,2,2] = Neg(%m)
  %c: f32[1,48,2,2] = Concat(%a, %n) {axis = 1}
  %y: f32[1,48,2,2] = Tanh(%c)
}
// EXPECT:
