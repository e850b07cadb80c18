graph (%x: f32[N,2], %w: weight f32[2,2]) -> (%y) where N in 0..8 {
  %k: const i64[2,2] = [1, 2, 3, 4]
  %y = MatMul(%x, %w) {alpha = 1, beta = 2.0} @name("mm") @from("a (A)", "b (B)")
  _, %z = Split(_, %y, _)
  %v @space(1) = Relu(%z)
}
