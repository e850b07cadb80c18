// RUN: cancel-transposes, remove-dead
// Nothing would be won: no other Transpose; a value that others read as it is; an output that would be an input.
graph @g(%x: f32[2,3,4], %z: f32[3,2,4]) -> (%y, %u, %v, %k, %w) {
  %a: f32[3,2,4] = Transpose(%x) {perm = [1, 0, 2]}
  %b: f32[3,2,4] = Relu(%a)
  %c: f32[3,2,4] = Add(%b, %z)
  %y: f32[3,2,4] = Softmax(%c)
  %d: f32[3,4,2] = Transpose(%x) {perm = [1, 2, 0]}
  %e: f32[3,4,2] = Exp(%d)
  %u: f32[2,3,4] = Transpose(%e) {perm = [2, 0, 1]}
  %v: f32[3,8] = Flatten(%e) {axis = 1}
  %k: f32[12,2] = Flatten(%d) {axis = 2}
  %i: f32[2,4,3] = Transpose(%x) {perm = [0, 2, 1]}
  %w: f32[2,3,4] = Transpose(%i) {perm = [0, 2, 1]}
}
// EXPECT:
graph @g(%x: f32[2,3,4], %z: f32[3,2,4]) -> (%y, %u, %v, %k, %w) {
  %a: f32[3,2,4] = Transpose(%x) {perm = [1, 0, 2]}
  %b: f32[3,2,4] = Relu(%a)
  %c: f32[3,2,4] = Add(%b, %z)
  %y: f32[3,2,4] = Softmax(%c)
  %d: f32[3,4,2] = Transpose(%x) {perm = [1, 2, 0]}
  %e: f32[3,4,2] = Exp(%d)
  %u: f32[2,3,4] = Transpose(%e) {perm = [2, 0, 1]}
  %v: f32[3,8] = Flatten(%e) {axis = 1}
  %k: f32[12,2] = Flatten(%d) {axis = 2}
  %i: f32[2,4,3] = Transpose(%x) {perm = [0, 2, 1]}
  %w: f32[2,3,4] = Transpose(%i) {perm = [0, 2, 1]}
}
