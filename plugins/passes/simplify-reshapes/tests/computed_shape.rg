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
graph @g(%x: f32[N,3,4,5]) -> (%y, %z) where N in 1.. {
  %rest: const i64[1] = [60]
  %0: const i64[2] = [0, 60]
  %1: const i64[3] = [15, 4, -1]
  %r: f32[N,3,4,5] = Relu(%x)
  %y: f32[N,60] = Reshape(%r, %0)
  %z: f32[15,4,N] = Reshape(%r, %1)
}
