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
