// RUN: fuse-pointwise
// Must not fire: the sum reads %a, and %c reads the sum. One node of both would need its own result.
graph @g(%x: f32[2,3]) -> (%c) {
  %axes: const i64[1] = [1]
  %a: f32[2,3] = Exp(%x)
  %s: f32[2,1] = ReduceSum(%a, %axes) {keepdims = 1}
  %c: f32[2,3] = Div(%a, %s)
}
// EXPECT:
graph @g(%x: f32[2,3]) -> (%c) {
  %axes: const i64[1] = [1]
  %a: f32[2,3] = Exp(%x)
  %s: f32[2,1] = ReduceSum(%a, %axes) {keepdims = 1}
  %c: f32[2,3] = Div(%a, %s)
}
