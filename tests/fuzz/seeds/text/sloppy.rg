// a comment
graph(%x:f32[N,2],%w: weight f32[2,2])->(%y)where N in ..8{
  %y=MatMul(%x,%w)@from("b (B)","a (A)") {
    beta = 2.0, alpha = 1} @name("mm") // behind
  %k : const i64[2,2]=[[1,2],
                       [3,4]]
  %_, %z = Split(%_, %y, _)
  %v = Relu(%z) @space(1) {}
}