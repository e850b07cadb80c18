// RUN: infer-shapes
// A strided convolution with padding: (8 + 2 - 3) / 2 + 1 = 4; the batch stays a symbol.
graph @g(%x: f32[N,3,8,8], %w: const f32[4,3,3,3]) -> (%y) where N in 1..32 {
  %c = Conv(%x, %w) {pads = [1, 1, 1, 1], strides = [2, 2]}
  %r = Relu(%c)
  %y = Flatten(%r) {axis = 1}
}
// EXPECT:
graph @g(%x: f32[N,3,8,8], %w: const f32[4,3,3,3]) -> (%y) where N in 1..32 {
  %c: f32[N,4,4,4] = Conv(%x, %w) {pads = [1, 1, 1, 1], strides = [2, 2]}
  %r: f32[N,4,4,4] = Relu(%c)
  %y: f32[N,64] = Flatten(%r) {axis = 1}
}
