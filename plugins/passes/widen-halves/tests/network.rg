// RUN: infer-shapes, widen-halves, remove-dead
// An input is converted, and rounded, as the graph says; from there on nothing is narrow until it is handed out.
graph @g(%x: f32[1,2,4,4]) -> (%y, %t) {
  %h = Cast(%x) {to = 10}
  %p = MaxPool(%h) {kernel_shape = [2, 2]}
  %r = Relu(%p)
  %y = Cast(%r) {to = 1}
  %n = Neg(%r)
  %z = Less(%n, %r)
  %t = Cast(%z) {to = 1}
}
// EXPECT:
graph @g(%x: f32[1,2,4,4]) -> (%2 as "y", %t) {
  %h: f16[1,2,4,4] = Cast(%x) {to = 10}
  %0: f32[1,2,4,4] = Cast(%h) {to = 1}
  %1: f32[1,2,3,3] = MaxPool(%0) {kernel_shape = [2, 2]}
  %2: f32[1,2,3,3] = Relu(%1)
  %3: f32[1,2,3,3] = Neg(%2)
  %z: bool[1,2,3,3] = Less(%3, %2)
  %t: f32[1,2,3,3] = Cast(%z) {to = 1}
}
