// RUN: cancel-transposes, remove-dead
// Two become one behind the sum; two in a row become one; the mean is read as it was.
graph @g(%x: f32[2,3,4], %z: f32[2,3,4]) -> (%y, %w) {
  %axes: const i64[1] = [1]
  %a: f32[4,2,3] = Transpose(%x) {perm = [2, 0, 1]}
  %b: f32[4,2,3] = Transpose(%z) {perm = [2, 0, 1]}
  %c: f32[4,2,3] = Add(%a, %b)
  %y: f32[4,1,3] = ReduceMax(%c, %axes)
  %d: f32[4,3,2] = Transpose(%x) {perm = [2, 1, 0]}
  %e: f32[3,4,2] = Transpose(%d) {perm = [1, 0, 2]}
  %w: f32[3,4,2] = Exp(%e)
}
// EXPECT:
graph @g(%x: f32[2,3,4], %z: f32[2,3,4]) -> (%y, %w) {
  %axes: const i64[1] = [1]
  %0: f32[2,3,4] = Add(%x, %z)
  %1: f32[4,2,3] = Transpose(%0) {perm = [2, 0, 1]}
  %y: f32[4,1,3] = ReduceMax(%1, %axes)
  %e: f32[3,4,2] = Transpose(%x) {perm = [1, 2, 0]}
  %w: f32[3,4,2] = Exp(%e)
}
