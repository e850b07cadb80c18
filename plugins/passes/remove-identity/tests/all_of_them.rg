// RUN: infer-shapes, remove-identity, remove-dead
graph @g(%x: f32[N,3]) -> (%y) where N in 1.. {
  %shape: const i64[2] = [0, -1]
  %starts: const i64[1] = [0]
  %ends: const i64[1] = [3]
  %axes: const i64[1] = [1]
  %one: const i64[1] = [1]
  %none: const i64[4] = [0, 0, 0, 0]
  %a = Relu(%x)
  %b = Identity(%a)
  %c = Cast(%b) {to = 1}
  %d = Transpose(%c) {perm = [0, 1]}
  %e = Reshape(%d, %shape)
  %f = Flatten(%e) {axis = 1}
  %h = Slice(%f, %starts, %ends, %axes, %one)
  %i = Concat(%h) {axis = 0}
  %p = Pad(%i, %none)
  %y = Neg(%p)
}
// EXPECT:
graph @g(%x: f32[N,3]) -> (%y) where N in 1.. {
  %a: f32[N,3] = Relu(%x)
  %y: f32[N,3] = Neg(%a)
}
