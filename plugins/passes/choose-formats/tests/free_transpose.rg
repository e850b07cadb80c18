// RUN: place-by-priority, insert-copies, choose-formats
// Channels last is what the transposition asks for: it moves nothing, and there is no conversion before it.
graph @patches(%x: f32[N,3,32,32], %w: weight f32[16,3,4,4]) -> (%y) where N in 1..8 {
  %c: f32[N,16,8,8] = Conv(%x, %w) {strides = [4, 4]}
  %y: f32[N,8,8,16] = Transpose(%c) {perm = [0, 2, 3, 1]}
}
// EXPECT:
graph @patches(%x: f32[N,3,32,32] @space(0), %w: weight f32[16,3,4,4]) -> (%y) where N in 1..8 on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %c: f32[N,16,8,8] @space(0) = Conv(%x, %w) {auto_pad = "NOTSET", group = 1, strides = [4, 4]} @engine("cpu")
  %y: f32[N,8,8,16] @space(0) = Transpose(%c) {perm = [0, 2, 3, 1]} @engine("cpu")
}
