// RUN: place-by-priority, schedule-in-order, schedule-on-streams | target=host_cpu
// This computer has one stream unless several are asked for.
graph @g(%x: f32[256,256], %a: f32[256,256]) -> (%p, %q) {
  %p: f32[256,256] = MatMul(%x, %a)
  %q: f32[256,256] = MatMul(%a, %x)
}
// EXPECT:
graph @g(%x: f32[256,256] @space(0), %a: f32[256,256] @space(0)) -> (%p, %q) on "cpu" = "cpu" 0 space 0 {
  %p: f32[256,256] @space(0) = MatMul(%x, %a) @engine("cpu") @stream(0)
  %q: f32[256,256] @space(0) = MatMul(%a, %x) @engine("cpu") @stream(0)
}
