// RUN: infer-shapes, fold-constants, simplify-reshapes, remove-dead
// The usual way to keep the batch: nothing of it is left.
graph @g(%x: f32[N,3,4,5]) -> (%y, %z) where N in 1.. {
  %zero: const i64[] = 0
  %axis: const i64[1] = [0]
  %rest: const i64[1] = [60]
  %minus: const i64[1] = [-1]
  %four: const i64[1] = [4]
  %s = Shape(%x)
  %b = Gather(%s, %zero) {axis = 0}
  %u = Unsqueeze(%b, %axis)
  %shape = Concat(%u, %minus) {axis = 0}
  %r = Relu(%x)
  %y = Reshape(%r, %shape)
  %t = Concat(%minus, %four, %u) {axis = 0}
  %z = Reshape(%r, %t)
}
// EXPECT:
