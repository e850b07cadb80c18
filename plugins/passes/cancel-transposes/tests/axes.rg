// RUN: cancel-transposes, remove-dead
// Axes are renumbered; a reduction that leaves the rest in order needs none.
graph @g(%x: f32[2,3,4,5], %z: f32[2,6,4,5]) -> (%y, %m) {
  %pads: const i64[8] = [0, 1, 0, 0, 0, 0, 2, 0]
  %pixels: const i64[2] = [1, 2]
  %a: f32[2,4,5,3] = Transpose(%x) {perm = [0, 2, 3, 1]}
  %b: f32[2,4,5,6] = Transpose(%z) {perm = [0, 2, 3, 1]}
  %c: f32[2,4,5,9] = Concat(%a, %b) {axis = 3}
  %s: f32[2,4,5,9] = Softmax(%c)
  %p: f32[2,5,7,9] = Pad(%s, %pads)
  %m: f32[2,9] = ReduceMean(%p, %pixels) {keepdims = 0}
  %y: f32[2,9,5,7] = Transpose(%p) {perm = [0, 3, 1, 2]}
}
// EXPECT:
graph @g(%x: f32[2,3,4,5], %z: f32[2,6,4,5]) -> (%4 as "y", %m) {
  %0: const i64[8] = [0, 0, 1, 0, 0, 0, 0, 2]
  %1: const i64[2] = [2, 3]
  %2: f32[2,9,4,5] = Concat(%x, %z) {axis = 1}
  %3: f32[2,9,4,5] = Softmax(%2) {axis = 1}
  %4: f32[2,9,5,7] = Pad(%3, %0)
  %m: f32[2,9] = ReduceMean(%4, %1) {keepdims = 0}
}
