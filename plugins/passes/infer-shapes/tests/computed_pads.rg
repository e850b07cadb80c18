// RUN: infer-shapes
// The shape depends on numbers that are turned over in a matrix, which contents do not follow.
graph @g(%x: f32[N,3,4]) -> (%y) {
  %pads: const i64[6] = [0, 1, 0, 2, 0, 0]
  %pairs: const i64[2] = [3, 2]
  %flat: const i64[1] = [-1]
  %m = Reshape(%pads, %pairs)
  %t = Transpose(%m) {perm = [1, 0]}
  %p = Reshape(%t, %flat)
  %y = Pad(%x, %p)
}
// EXPECT:
graph @g(%x: f32[N,3,4]) -> (%y) {
  %pads: const i64[6] = [0, 1, 0, 2, 0, 0]
  %pairs: const i64[2] = [3, 2]
  %flat: const i64[1] = [-1]
  %m: i64[3,2] = Reshape(%pads, %pairs)
  %t: i64[2,3] = Transpose(%m) {perm = [1, 0]}
  %p: i64[6] = Reshape(%t, %flat)
  %y: f32[N+1,5,4] = Pad(%x, %p)
}
