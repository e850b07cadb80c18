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
