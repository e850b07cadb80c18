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
graph @g(%x: f32[1,16,2,2] @space(0), %w: f32[1,32,2,2] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %a: f32[1,16,2,2] @space(0) @alias(%c, 0) = Exp(%x) @engine("cpu")
  %m: f32[1,32,2,2] @space(0) @alias(%c, 256) = Exp(%w) @engine("cpu")
  %n: f32[1,32,2,2] @space(0) @alias(%m, 0) = Neg(%m) @engine("cpu")
  %c: f32[1,48,2,2] @space(0) = Concat(%a, %n) {axis = 1} @engine("cpu")
  %y: f32[1,48,2,2] @space(0) = Tanh(%c) @engine("cpu")
}
