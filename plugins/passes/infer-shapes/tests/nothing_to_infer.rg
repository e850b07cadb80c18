// RUN: infer-shapes
graph @g(%x: f32[2,3]) -> (%x) {
}
// EXPECT:
graph @g(%x: f32[2,3]) -> (%x) {
}
