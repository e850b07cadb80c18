// RUN: infer-shapes
// The shape that Reshape is given is computed from the operand's own: known although the batch is not.
graph @g(%x: f32[N,4,6]) -> (%y) where N in 1.. {
  %zero: const i64[1] = [0]
  %rest: const i64[1] = [24]
  %s = Shape(%x)
  %n = Gather(%s, %zero)
  %t = Concat(%n, %rest) {axis = 0}
  %y = Reshape(%x, %t)
}
// EXPECT:
graph @g(%x: f32[N,4,6]) -> (%y) where N in 1.. {
  %zero: const i64[1] = [0]
  %rest: const i64[1] = [24]
  %s: i64[3] = Shape(%x)
  %n: i64[1] = Gather(%s, %zero)
  %t: i64[2] = Concat(%n, %rest) {axis = 0}
  %y: f32[N,24] = Reshape(%x, %t)
}
