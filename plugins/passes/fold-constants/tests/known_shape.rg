// RUN: infer-shapes, fold-constants
// Of a static tensor the shape is known, although the tensor is not constant.
graph @g(%x: f32[2,3]) -> (%y, %s) {
  %s = Shape(%x)
  %y = Reshape(%x, %s)
}
// EXPECT:
graph @g(%x: f32[2,3]) -> (%y, %s) {
  %s: const i64[2] = [2, 3]
  %y: f32[2,3] = Reshape(%x, %s)
}
