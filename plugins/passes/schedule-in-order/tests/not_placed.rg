// RUN: schedule-in-order
graph @g(%x: f32[2,4]) -> (%y) {
  %y: f32[2,4] = Relu(%x)
}
// FAIL: needs 'placed'
