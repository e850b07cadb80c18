// RUN: infer-shapes, fold-constants
// The batch is a symbol, so the shape is not a constant; what reads an input is not either; what nobody reads is left to
// remove-dead.
graph @g(%x: f32[N,3]) -> (%s, %y) where N in 1.. {
  %k: const f32[1] = [2.0]
  %s: i64[2] = Shape(%x)
  %y: f32[N,3] = Mul(%x, %k)
  %unread: f32[1] = Neg(%k)
}
// EXPECT:
graph @g(%x: f32[N,3]) -> (%s, %y) where N in 1.. {
  %k: const f32[1] = [2.0]
  %s: i64[2] = Shape(%x)
  %y: f32[N,3] = Mul(%x, %k)
  %unread: f32[1] = Neg(%k)
}
