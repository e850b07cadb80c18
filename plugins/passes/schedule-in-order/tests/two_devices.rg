// RUN: place-by-priority, insert-copies, schedule-in-order
// One stream a device.
graph @g(%x: f32[2,4]) -> (%y) {
  %r: f32[2,4] = Relu(%x)
  %y: f32[2,4] = Softmax(%r) {axis = 1}
}
// EXPECT:
graph @g(%x: f32[2,4] @space(0)) -> (%y.host as "y") on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %r: f32[2,4] @space(0) = Relu(%x) @engine("cpu") @stream(0)
  %r.null0: f32[2,4] @space(1) = regie.Copy(%r) @name("r to null0") @engine("null") @stream(0)
  %y: f32[2,4] @space(1) = Softmax(%r.null0) {axis = 1} @engine("null") @stream(0)
  %y.host: f32[2,4] @space(0) = regie.Copy(%y) @name("y to host") @engine("null") @stream(0)
}
