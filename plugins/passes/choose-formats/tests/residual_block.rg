// RUN: place-by-priority, insert-copies, choose-formats
// One conversion on the way in and one on the way out; the element-wise operator between goes along.
graph @block(%x: f32[1,32,14,14], %w1: weight f32[32,32,3,3], %w2: weight f32[32,32,3,3]) -> (%y) {
  %a: f32[1,32,14,14] = regie.FusedConv(%x, %w1) {activation = "Relu", pads = [1, 1, 1, 1]}
  %s: f32[1,32,14,14] = Sigmoid(%a)
  %y: f32[1,32,14,14] = regie.FusedConv(%s, %w2, _, %a) {activation = "Relu", pads = [1, 1, 1, 1]}
}
// EXPECT:
graph @block(%x: f32[1,32,14,14] @space(0), %w1: weight f32[32,32,3,3], %w2: weight f32[32,32,3,3]) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %a: f32[1,32,14,14] @space(0) = regie.FusedConv(%x, %w1) {activation = "Relu", activation_alpha = 0.0, activation_beta = 0.0, auto_pad = "NOTSET", group = 1, pads = [1, 1, 1, 1]} @engine("cpu")
  %s: f32[1,32,14,14] @space(0) = Sigmoid(%a) @engine("cpu")
  %y: f32[1,32,14,14] @space(0) = regie.FusedConv(%s, %w2, _, %a) {activation = "Relu", activation_alpha = 0.0, activation_beta = 0.0, auto_pad = "NOTSET", group = 1, pads = [1, 1, 1, 1]} @engine("cpu")
}
