// RUN: place-by-priority, schedule-in-order, schedule-on-streams | target=host_cpu schedule-on-streams.streams=4
// One after the other: there is nothing to lay beside anything.
graph @g(%x: f32[256,256], %a: f32[256,256]) -> (%y) {
  %p: f32[256,256] = MatMul(%x, %a)
  %q: f32[256,256] = MatMul(%p, %a)
  %y: f32[256,256] = Add(%p, %q)
}
// EXPECT:
graph @g(%x: f32[256,256] @space(0), %a: f32[256,256] @space(0)) -> (%y) on "cpu" = "cpu" 0 space 0 {
  %p: f32[256,256] @space(0) = MatMul(%x, %a) @engine("cpu") @stream(0)
  %q: f32[256,256] @space(0) = MatMul(%p, %a) @engine("cpu") @stream(0)
  %y: f32[256,256] @space(0) = Add(%p, %q) @engine("cpu") @stream(0)
}
