package dialects
import ("testing";"os";"bytes";"bufio";"strings";"fmt";"github.com/tracedag/tracedag/formats/chakra/pytorch";"github.com/tracedag/tracedag/formats/chakra/text";"github.com/tracedag/tracedag/formats/format")
func TestZZ(t *testing.T){
	for _,k:=range []string{"text","pt"} {
	D:="/tmp/ref/diff/"+k+"/"
	m,_:=os.Open(D+"manifest"); s:=bufio.NewScanner(m); ok,fail,lax:=0,0,0
	for s.Scan(){
		var i,ranks,passes int; var res string
		f:=text.Format; ext:="txt"
		if k=="text" {fmt.Sscan(s.Text(),&i,&ranks,&passes,&res)} else {fmt.Sscan(s.Text(),&i,&res); ranks=1; f=pytorch.Format; ext="json"}
		in:=open(t,fmt.Sprintf(D+"%d.%s",i,ext))
		tr,err:=f.Read([]*format.Input{in},format.ReadOptions{Warn:func(string,...any){},Model:format.ModelOptions{Ranks:ranks,Passes:passes}})
		if res!="ok" { if err==nil {lax++;t.Log("lax",k,s.Text())} else {fail++}; continue}
		if err!=nil { t.Log(k,i,err); continue}
		got:=write(t,throughStore(t,tr))
		for r:=range ranks { n:=fmt.Sprintf(D+"%d.et",i); if k=="text"{n=fmt.Sprintf(D+"%d.%d.et",i,r)}
		want,_:=os.ReadFile(n); if !bytes.Equal(want,got[r]) {
			t.Log(k,i,r,"differs",len(want),len(got[r])); os.WriteFile("/tmp/ref/diff/got.et",got[r],0o644); os.WriteFile("/tmp/ref/diff/want.et",want,0o644)} else if r==0 {ok++}}
	}
	t.Log(k,ok,fail,lax)
	}
	_=strings.Cut
}
