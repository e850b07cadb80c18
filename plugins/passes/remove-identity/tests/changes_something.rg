// RUN: infer-shapes, remove-identity
// Square shapes hide a transposition and a reversal from those who look at types alone.
graph @g(%x: f32[2,2]) -> (%y) {
  %starts: const i64[1] = [-1]
  %ends: const i64[1] = [-3]
  %axes: const i64[1] = [0]
  %back: const i64[1] = [-1]
  %flat: const i64[1] = [4]
  %moved: const i64[4] = [0, 1, 0, -1]
  %a: f32[2,2] = Transpose(%x) {perm = [1, 0]}
  %b: f32[2,2] = Transpose(%a)
  %c: f32[2,2] = Slice(%b, %starts, %ends, %axes, %back)
  %p: f32[2,2] = Pad(%c, %moved)
  %d: f32[4] = Reshape(%p, %flat)
  %y: f64[4] = Cast(%d) {to = 11}
}
// EXPECT:
graph @g(%x: f32[2,2]) -> (%y) {
  %starts: const i64[1] = [-1]
  %ends: const i64[1] = [-3]
  %axes: const i64[1] = [0]
  %back: const i64[1] = [-1]
  %flat: const i64[1] = [4]
  %moved: const i64[4] = [0, 1, 0, -1]
  %a: f32[2,2] = Transpose(%x) {perm = [1, 0]}
  %b: f32[2,2] = Transpose(%a)
  %c: f32[2,2] = Slice(%b, %starts, %ends, %axes, %back)
  %p: f32[2,2] = Pad(%c, %moved)
  %d: f32[4] = Reshape(%p, %flat)
  %y: f64[4] = Cast(%d) {to = 11}
}
