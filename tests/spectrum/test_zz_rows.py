import networkx as nx, numpy as np, pytest, sys
sys.path.insert(0,'/work/wt/rows/tests/spectrum')
from eigenscape.clusters import Serial, Threads
from eigenscape.context import Loop
from eigenscape.spectrum.iteration.chebyshev import solve
from eigenscape.spectrum.iteration.layout import Layout
@pytest.mark.parametrize('slots',[1,2,3,7])
@pytest.mark.parametrize('dt',[np.float32,np.float64])
@pytest.mark.parametrize('count',[1,3])
def test_x(make_problem,monkeypatch,slots,dt,count):
    monkeypatch.setattr("eigenscape.spectrum.kernels.tiles.ROW_TILE",64)
    g=nx.grid_2d_graph(45,47); rng=np.random.default_rng(2)
    for _,_,d in g.edges(data=True): d['weight']=float(rng.uniform(.3,1))
    W=nx.adjacency_matrix(g).astype(float)
    said=[]
    res=[]
    for name,layout in (('a',Layout()),('b',Layout('rows',slots,note=said.append))):
        p=make_problem(W,kind='normalized',dtype=dt,name=name,count=count)
        res.append(solve(p,20,1e-4 if dt==np.float32 else 1e-8,Loop(Threads(2)),print,layout))
        print([f.name for f in p.directory.iterdir()])
    print(said)
    np.testing.assert_array_equal(res[0].values,res[1].values); np.testing.assert_array_equal(res[0].residuals,res[1].residuals)
    np.testing.assert_array_equal(res[0].vectors.read(slice(None)),res[1].vectors.read(slice(None)))
