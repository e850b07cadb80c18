// RUN: place-by-priority, insert-copies, choose-formats
// Nothing gains by a format: nothing is converted.
graph @plain(%x: f32[2,8,16], %w: weight f32[16,16]) -> (%y) {
  %m: f32[2,8,16] = MatMul(%x, %w)
  %s: f32[2,8,16] = Sigmoid(%m)
  %y: f32[2,8,16] = Add(%s, %x)
}
// EXPECT:
graph @plain(%x: f32[2,8,16] @space(0), %w: weight f32[16,16]) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %m: f32[2,8,16] @space(0) = MatMul(%x, %w) @engine("cpu")
  %s: f32[2,8,16] @space(0) = Sigmoid(%m) @engine("cpu")
  %y: f32[2,8,16] @space(0) = Add(%s, %x) @engine("cpu")
}
