// RUN: place-by-priority, insert-copies, schedule-in-order, plan-greedy
// Offsets are kept beside the graph: the graph itself stays as it is.
graph @g(%x: f32[2,4]) -> (%y) {
  %r: f32[2,4] = Relu(%x)
  %s: f32[2,4] = Exp(%r)
  %y: f32[2,4] = Neg(%s)
}
// EXPECT:
graph @g(%x: f32[2,4] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %r: f32[2,4] @space(0) = Relu(%x) @engine("cpu") @stream(0)
  %s: f32[2,4] @space(0) = Exp(%r) @engine("cpu") @stream(0)
  %y: f32[2,4] @space(0) = Neg(%s) @engine("cpu") @stream(0)
}
