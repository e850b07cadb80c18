// RUN: infer-shapes, simplify-reshapes, remove-dead
// Views of views, transpositions of axes of size 1 among them.
graph @g(%x: f32[7,1,12]) -> (%y, %z) {
  %heads: const i64[3] = [7, 4, 3]
  %flat: const i64[2] = [7, 12]
  %axes: const i64[1] = [1]
  %a = Transpose(%x) {perm = [1, 0, 2]}
  %b = Reshape(%a, %heads)
  %c = Reshape(%b, %flat)
  %y = Relu(%c)
  %d = Unsqueeze(%y, %axes)
  %z = Transpose(%d) {perm = [1, 0, 2]}
}
// EXPECT:
graph @g(%x: f32[7,1,12]) -> (%y, %z) {
  %0: const i64[2] = [7, 12]
  %1: const i64[3] = [1, 7, 12]
  %c: f32[7,12] = Reshape(%x, %0)
  %y: f32[7,12] = Relu(%c)
  %z: f32[1,7,12] = Reshape(%y, %1)
}
