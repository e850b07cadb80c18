// RUN: place-by-priority, insert-copies, choose-formats
// Channels last is what the transposition asks for: it moves nothing, and there is no conversion before it.
graph @patches(%x: f32[N,3,32,32], %w: weight f32[16,3,4,4]) -> (%y) where N in 1..8 {
  %c: f32[N,16,8,8] = Conv(%x, %w) {strides = [4, 4]}
  %y: f32[N,8,8,16] = Transpose(%c) {perm = [0, 2, 3, 1]}
}
// EXPECT:
