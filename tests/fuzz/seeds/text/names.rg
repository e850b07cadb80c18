graph @n(%x: f32[2]) -> (%y as "scores", %y as "again", %0 as "third") {
  %y: f32[2] = Relu(%x)
  %y#1: f32[2] = Relu(%y)
  %0: f32[2] = Relu(%y#1)
  %"a/b:0": f32[2] = Relu(%0)
  %"7": f32[2] = Relu(%"a/b:0")
  %1: f32[2] = "aten::relu"(%"7")
}
