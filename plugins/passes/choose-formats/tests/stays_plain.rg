// RUN: place-by-priority, insert-copies, choose-formats
// Nothing gains by a format: nothing is converted.
graph @plain(%x: f32[2,8,16], %w: weight f32[16,16]) -> (%y) {
  %m: f32[2,8,16] = MatMul(%x, %w)
  %s: f32[2,8,16] = Sigmoid(%m)
  %y: f32[2,8,16] = Add(%s, %x)
}
// EXPECT:
