// RUN: place-by-priority, insert-copies
// One copy for both readers on the accelerator, before the first; both outputs come back; what stays on the host does not
// move.
graph @g(%x: f32[2,4]) -> (%y, %z, %r) {
  %r: f32[2,4] = Relu(%x)
  %y: f32[2,4] = Softmax(%r) {axis = 1}
  %n: f32[2,4] = Neg(%r)
  %z: f32[2,4] = LogSoftmax(%r) {axis = 1}
  %m: f32[2,4] = Add(%n, %y)
}
// EXPECT:
graph @g(%x: f32[2,4] @space(0)) -> (%y.host as "y", %z.host as "z", %r) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %r: f32[2,4] @space(0) = Relu(%x) @engine("cpu")
  %r.null0: f32[2,4] @space(1) = regie.Copy(%r) @name("r to null0") @engine("null")
  %y: f32[2,4] @space(1) = Softmax(%r.null0) {axis = 1} @engine("null")
  %y.host: f32[2,4] @space(0) = regie.Copy(%y) @name("y to host") @engine("null")
  %n: f32[2,4] @space(0) = Neg(%r) @engine("cpu")
  %z: f32[2,4] @space(1) = LogSoftmax(%r.null0) {axis = 1} @engine("null")
  %z.host: f32[2,4] @space(0) = regie.Copy(%z) @name("z to host") @engine("null")
  %m: f32[2,4] @space(0) = Add(%n, %y.host) @engine("cpu")
}
