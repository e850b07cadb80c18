// RUN: fold-constants
graph @g(%x: f32[3,2]) -> (%y) {
  %w: weight f32[2,2] = [1.0, 2.0, 3.0, 4.0]
  %t: f32[2,2] = Transpose(%w) {perm = [1, 0]}
  %y: f32[3,2] = MatMul(%x, %t)
}
// EXPECT:
graph @g(%x: f32[3,2]) -> (%y) {
  %t: weight f32[2,2] = [1.0, 3.0, 2.0, 4.0]
  %y: f32[3,2] = MatMul(%x, %t)
}
