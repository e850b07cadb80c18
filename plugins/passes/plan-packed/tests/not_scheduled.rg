// RUN: place-by-priority, insert-copies, plan-packed
graph @g(%x: f32[2,4]) -> (%y) {
  %y: f32[2,4] = Relu(%x)
}
// FAIL: needs 'scheduled'
