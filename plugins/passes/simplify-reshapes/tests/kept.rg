// RUN: infer-shapes, simplify-reshapes
// A transposition that moves elements; two symbols that are made of others; a batch that may be empty.
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
