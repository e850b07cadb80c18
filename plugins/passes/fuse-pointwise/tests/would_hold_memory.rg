// RUN: fuse-pointwise
// Must not fire: %a waits for the product; made at its place it would keep %p and %q alive instead of itself.
graph @g(%x: f32[4,4], %w: f32[4,4]) -> (%c) {
  %p: f32[4,4] = MatMul(%x, %w)
  %q: f32[4,4] = MatMul(%p, %w)
  %a: f32[4,4] = Add(%p, %q)
  %m: f32[4,4] = MatMul(%w, %w)
  %c: f32[4,4] = Mul(%m, %a)
}
// EXPECT:
graph @g(%x: f32[4,4], %w: f32[4,4]) -> (%c) {
  %p: f32[4,4] = MatMul(%x, %w)
  %q: f32[4,4] = MatMul(%p, %w)
  %a: f32[4,4] = Add(%p, %q)
  %m: f32[4,4] = MatMul(%w, %w)
  %c: f32[4,4] = Mul(%m, %a)
}
