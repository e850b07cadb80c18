graph @tiny(%x: f32[N,8,8,3], %w: const f32[16,3,3,3], %k: const f32[16]) -> (%y) where N in 1..32 {
  %c: f32[N,16,6,6] = Conv(%x, %w, %k) {strides = [1, 1]} @from("conv1")
  %y: f32[N,16,6,6] = Relu(%c) @from("act1")
}
