// RUN: infer-shapes, simplify-reshapes
// A transposition that moves elements; two symbols that are made of others.
graph @g(%x: f32[N,M,6], %e: f32[L,6]) -> (%y, %z, %w) where N in 1.., M in 1.., L in 0.. {
  %zero: const i64[] = 0
  %one: const i64[] = 1
  %axis: const i64[1] = [0]
  %two: const i64[1] = [2]
  %three: const i64[1] = [3]
  %t = Transpose(%x) {perm = [1, 0, 2]}
  %y = Relu(%t)
  %s = Shape(%x)
  %n = Gather(%s, %zero) {axis = 0}
  %n1 = Unsqueeze(%n, %axis)
  %m = Gather(%s, %one) {axis = 0}
  %m1 = Unsqueeze(%m, %axis)
  %shape = Concat(%m1, %n1, %two, %three) {axis = 0}
  %z = Reshape(%x, %shape)
  %se = Shape(%e)
  %l = Gather(%se, %zero) {axis = 0}
  %l1 = Unsqueeze(%l, %axis)
  %l2 = Mul(%l1, %two)
  %shape2 = Concat(%three, %l2) {axis = 0}
  %w = Reshape(%e, %shape2)
}
// EXPECT:
graph @g(%x: f32[N,M,6], %e: f32[L,6]) -> (%y, %z, %w) where M in 1.., N in 1.. {
  %zero: const i64[] = 0
  %one: const i64[] = 1
  %axis: const i64[1] = [0]
  %two: const i64[1] = [2]
  %three: const i64[1] = [3]
  %0: const i64[2] = [3, -1]
  %t: f32[M,N,6] = Transpose(%x) {perm = [1, 0, 2]}
  %y: f32[M,N,6] = Relu(%t)
  %s: i64[3] = Shape(%x)
  %n: i64[] = Gather(%s, %zero) {axis = 0}
  %n1: i64[1] = Unsqueeze(%n, %axis)
  %m: i64[] = Gather(%s, %one) {axis = 0}
  %m1: i64[1] = Unsqueeze(%m, %axis)
  %shape: i64[4] = Concat(%m1, %n1, %two, %three) {axis = 0}
  %z: f32[M,N,2,3] = Reshape(%x, %shape)
  %se: i64[2] = Shape(%e)
  %l: i64[] = Gather(%se, %zero) {axis = 0}
  %l1: i64[1] = Unsqueeze(%l, %axis)
  %l2: i64[1] = Mul(%l1, %two)
  %shape2: i64[2] = Concat(%three, %l2) {axis = 0}
  %w: f32[3,2*L] = Reshape(%e, %0)
}
