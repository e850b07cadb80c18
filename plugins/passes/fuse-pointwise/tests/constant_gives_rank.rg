// RUN: fuse-pointwise
// Only the constant has the result's rank: it stays an operand.
graph @g(%x: f32[3]) -> (%b) {
  %one: const f32[1,1] = [1.0]
  %a: f32[1,3] = Add(%x, %one)
  %b: f32[1,3] = Relu(%a)
}
// EXPECT:
graph @g(%x: f32[3]) -> (%b) {
  %one: const f32[1,1] = [1.0]
  %b: f32[1,3] = regie.Pointwise(%x, %one) region @body(%0: f32[], %1: f32[]) -> (%3) {
    %2: f32[] = Add(%0, %1)
    %3: f32[] = Relu(%2)
  }
}
