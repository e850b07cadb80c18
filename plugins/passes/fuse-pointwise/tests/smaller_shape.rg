// RUN: infer-shapes,fuse-pointwise
// Must not fire: %v would be computed once for each row; %p and %q are the arithmetic of shapes.
graph @g(%x: f32[N,4], %w: f32[4]) -> (%y, %q) where N in 1..9 {
  %one: const i64[1] = [1]
  %v: f32[4] = Exp(%w)
  %y: f32[N,4] = Add(%x, %v)
  %s: i64[2] = Shape(%x)
  %p: i64[2] = Add(%s, %one)
  %q: i64[2] = Mul(%p, %p)
}
// EXPECT:
graph @g(%x: f32[N,4], %w: f32[4]) -> (%y, %q) where N in 1..9 {
  %one: const i64[1] = [1]
  %v: f32[4] = Exp(%w)
  %y: f32[N,4] = Add(%x, %v)
  %s: i64[2] = Shape(%x)
  %p: i64[2] = Add(%s, %one)
  %q: i64[2] = Mul(%p, %p)
}
