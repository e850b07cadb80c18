// RUN: place-by-priority, insert-copies, alias-in-place
// Must not share: %a is a part twice in %c. In %d, %e is read again behind: it may be a part, but is not written over.
graph @g(%x: f32[1,16,2,2]) -> (%y, %z) {
  %a: f32[1,16,2,2] = Exp(%x)
  %c: f32[1,32,2,2] = Concat(%a, %a) {axis = 1}
  %y: f32[1,32,2,2] = Tanh(%c)
  %e: f32[1,16,2,2] = Exp(%x)
  %f: f32[1,16,2,2] = Sqrt(%x)
  %d: f32[1,32,2,2] = Concat(%e, %f) {axis = 1}
  %g: f32[1,16,2,2] = Abs(%e)
  %h: f32[1,32,2,2] = Concat(%g, %f) {axis = 1}
  %i: f32[1,32,2,2] = Add(%d, %h)
  %z: f32[1,32,2,2] = Tanh(%i)
}
// EXPECT:
graph @g(%x: f32[1,16,2,2] @space(0)) -> (%y, %z) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %a: f32[1,16,2,2] @space(0) = Exp(%x) @engine("cpu")
  %c: f32[1,32,2,2] @space(0) = Concat(%a, %a) {axis = 1} @engine("cpu")
  %y: f32[1,32,2,2] @space(0) = Tanh(%c) @engine("cpu")
  %e: f32[1,16,2,2] @space(0) @alias(%d, 0) = Exp(%x) @engine("cpu")
  %f: f32[1,16,2,2] @space(0) @alias(%d, 256) = Sqrt(%x) @engine("cpu")
  %d: f32[1,32,2,2] @space(0) = Concat(%e, %f) {axis = 1} @engine("cpu")
  %g: f32[1,16,2,2] @space(0) = Abs(%e) @engine("cpu")
  %h: f32[1,32,2,2] @space(0) = Concat(%g, %f) {axis = 1} @engine("cpu")
  %i: f32[1,32,2,2] @space(0) @alias(%d, 0) = Add(%d, %h) @engine("cpu")
  %z: f32[1,32,2,2] @space(0) = Tanh(%i) @engine("cpu")
}
