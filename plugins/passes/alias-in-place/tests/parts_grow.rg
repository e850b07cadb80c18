// RUN: place-by-priority, insert-copies, alias-in-place
// A whole that grows: %c lies in %d, and so do the parts of both.
graph @g(%x: f32[1,16,2,2]) -> (%y) {
  %a: f32[1,16,2,2] = Exp(%x)
  %b: f32[1,16,2,2] = Neg(%a)
  %c: f32[1,32,2,2] = Concat(%a, %b) {axis = 1}
  %t: f32[1,32,2,2] = Abs(%c)
  %e: f32[1,32,2,2] = Exp(%t)
  %d: f32[1,64,2,2] = Concat(%a, %b, %e) {axis = 1}
  %s: f32[1,64,2,2] = Tanh(%d)
  %axes: const i64[1] = [1]
  %u: f32[1,1,2,2] = ReduceSum(%s, %axes) {keepdims = 1}
  %v: f32[1,1,2,2] = ReduceSum(%c, %axes) {keepdims = 1}
  %y: f32[1,1,2,2] = Add(%u, %v)
}
// EXPECT:
