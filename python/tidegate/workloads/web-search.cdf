# Flow sizes of a web-search cluster: bytes, share of flows that are not larger.
# After Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, figure 4, at the points that pFabric (SIGCOMM 2013) and most
# studies since use: 1, 6, 13, 19, ... packets of 1460 bytes. Mean 1.67 MB; a third of the flows have 95 % of the bytes.
1460      0
8760      0.15
18980     0.2
27740     0.3
48180     0.4
77380     0.53
194180    0.6
973820    0.7
1946180   0.8
4866180   0.9
9733820   0.97
29200000  1
