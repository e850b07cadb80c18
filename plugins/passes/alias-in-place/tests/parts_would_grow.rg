// RUN: place-by-priority, insert-copies, alias-in-place
// Must not share: %a is small and early, %b large and late. In between %m is the largest; with the whole of %c beside it
// more would be alive than now.
graph @g(%x: f32[1,16,2,2], %w: f32[1,512,2,2]) -> (%y) {
  %axes: const i64[1] = [1]
  %shape: const i64[4] = [1, 128, 2, 2]
  %a: f32[1,16,2,2] = Exp(%x)
  %m: f32[1,512,2,2] = Exp(%w)
  %r: f32[1,512,2,2] = Softmax(%m) {axis = 1}
  %t: f32[1,1,2,2] = ReduceSum(%r, %axes) {keepdims = 1}
  %b: f32[1,128,2,2] = Expand(%t, %shape)
  %c: f32[1,144,2,2] = Concat(%a, %b) {axis = 1}
  %y: f32[1,144,2,2] = Tanh(%c)
}
// EXPECT:
graph @g(%x: f32[1,16,2,2] @space(0), %w: f32[1,512,2,2] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %axes: const i64[1] = [1]
  %shape: const i64[4] = [1, 128, 2, 2]
  %a: f32[1,16,2,2] @space(0) = Exp(%x) @engine("cpu")
  %m: f32[1,512,2,2] @space(0) = Exp(%w) @engine("cpu")
  %m.null0: f32[1,512,2,2] @space(1) = regie.Copy(%m) @name("m to null0") @engine("null")
  %r: f32[1,512,2,2] @space(1) @alias(%m.null0, 0) = Softmax(%m.null0) {axis = 1} @engine("null")
  %r.host: f32[1,512,2,2] @space(0) = regie.Copy(%r) @name("r to host") @engine("null")
  %t: f32[1,1,2,2] @space(0) = ReduceSum(%r.host, %axes) {keepdims = 1, noop_with_empty_axes = 0} @engine("cpu")
  %b: f32[1,128,2,2] @space(0) = Expand(%t, %shape) @engine("cpu")
  %c: f32[1,144,2,2] @space(0) = Concat(%a, %b) {axis = 1} @engine("cpu")
  %y: f32[1,144,2,2] @space(0) = Tanh(%c) @engine("cpu")
}
