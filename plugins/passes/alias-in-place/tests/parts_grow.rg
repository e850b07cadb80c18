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
graph @g(%x: f32[1,16,2,2] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %axes: const i64[1] = [1]
  %a: f32[1,16,2,2] @space(0) @alias(%c, 0) = Exp(%x) @engine("cpu")
  %b: f32[1,16,2,2] @space(0) @alias(%c, 256) = Neg(%a) @engine("cpu")
  %c: f32[1,32,2,2] @space(0) @alias(%d, 0) = Concat(%a, %b) {axis = 1} @engine("cpu")
  %t: f32[1,32,2,2] @space(0) @alias(%d, 512) = Abs(%c) @engine("cpu")
  %e: f32[1,32,2,2] @space(0) @alias(%t, 0) = Exp(%t) @engine("cpu")
  %d: f32[1,64,2,2] @space(0) = Concat(%a, %b, %e) {axis = 1} @engine("cpu")
  %s: f32[1,64,2,2] @space(0) = Tanh(%d) @engine("cpu")
  %u: f32[1,1,2,2] @space(0) = ReduceSum(%s, %axes) {keepdims = 1, noop_with_empty_axes = 0} @engine("cpu")
  %v: f32[1,1,2,2] @space(0) = ReduceSum(%c, %axes) {keepdims = 1, noop_with_empty_axes = 0} @engine("cpu")
  %y: f32[1,1,2,2] @space(0) = Add(%u, %v) @engine("cpu")
}
