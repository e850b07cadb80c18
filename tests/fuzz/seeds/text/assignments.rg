graph @placed(%x: f32[2] @space(0)) -> (%y) on "cpu" = "host" 0 space 0, "npu" = "card" 1 space 1 {
  %h: f32[2] @space(0) @alias(%y, 64), _ = Split(%x) @engine("npu") @stream(2)
  Sink(%h) @label(0) @engine("cpu")
  %y: f32[2] @space(0) = Relu(%h) @after(%h, 0) @engine("cpu")
}
