// RUN: place-by-cost
// The accelerator is asked first; it has Softmax and no Relu.
graph @g(%x: f32[2,4]) -> (%y) {
  %r: f32[2,4] = Relu(%x)
  %y: f32[2,4] = Softmax(%r) {axis = 1}
}
// EXPECT:
graph @g(%x: f32[2,4] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %r: f32[2,4] @space(0) = Relu(%x) @engine("cpu")
  %y: f32[2,4] @space(1) = Softmax(%r) {axis = 1} @engine("null")
}
